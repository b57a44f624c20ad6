"""From fused groups to the steps of a plan, in memory and on disk."""
