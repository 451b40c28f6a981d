"""What lab, packet tests, tools and experiments start and watch: switches, processes, namespaces, captures."""
