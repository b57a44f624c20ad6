"""Programs with loops on values: recurrence, iteration to a tolerance, decoding with a cache."""
