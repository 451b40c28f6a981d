"""What lab, packet tests, tools and experiments start and watch: kinds of switches."""
