"""Model weights from the package index, and the sentence encoder that uses them."""
