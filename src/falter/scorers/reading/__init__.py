"""What a person reads out of a reply, below all scorers."""
