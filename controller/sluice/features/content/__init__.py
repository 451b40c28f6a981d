"""The feature of content services: their agents, and the rules that these have."""
