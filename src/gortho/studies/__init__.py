"""What reproduces and compares: `tasks`, `baselines`, the tables of `experiments`, `toptag`. Nothing else uses it."""
