"""Open benchmark: labeled articles in ten languages, generated from sentences written for it."""
