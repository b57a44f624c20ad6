"""Define and run: graphs that are built up front, with placeholders, and run in sessions."""
