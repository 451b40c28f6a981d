"""Labs: networks with servers, load and a controller, each one for one question."""
