"""Agents of content services, as the controller meets them: its messages, the calls, and the agent's program."""
