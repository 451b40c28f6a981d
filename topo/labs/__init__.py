"""Labs: networks with servers, load and a controller, each for one question."""
