"""The doors: their words become a Call, an Outcome becomes their words."""
