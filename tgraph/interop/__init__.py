"""Other libraries' arrays."""
