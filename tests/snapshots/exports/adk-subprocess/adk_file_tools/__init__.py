"""file-tools 1.0.0 as an agent for Google's ADK: root_agent.yaml, with tools.py."""
