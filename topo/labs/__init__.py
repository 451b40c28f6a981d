"""Labs: networks with servers, load and a controller, each built for one experiment."""
