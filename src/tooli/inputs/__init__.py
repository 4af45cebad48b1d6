"""Parameter types for inputs, secrets and output files, and constraints for parameters."""
