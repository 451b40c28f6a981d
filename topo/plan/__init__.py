"""What lab and simulation share: networks and loads as data, and the measures of their results."""
