"""Makes the papers' figures and tables anew, and compares sluice with load balancers of today: `make experiments`."""
