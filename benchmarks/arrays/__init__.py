"""Programs over arrays: stencils, selections, scans, searches, hand-written linear algebra."""
