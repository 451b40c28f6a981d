"""The controller's interface to the agents of content services: messages, calls, and the agent's program."""
