"""What lab and simulation both carry out: networks and loads as data, and the measures of what came of them."""
