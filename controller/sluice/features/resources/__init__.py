"""The feature that manages servers' TCP resources: it shares buffers among transfers, and closes idle connections."""
