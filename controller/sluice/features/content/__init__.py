"""The feature of content services: the agents that read their requests, and the rules by which agents decide."""
