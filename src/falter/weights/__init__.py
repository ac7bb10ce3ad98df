"""Floor 1: model weights from the package index, and the sentence encoder that runs on them."""
