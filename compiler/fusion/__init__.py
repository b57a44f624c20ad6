"""Which nodes are computed together by one kernel."""
