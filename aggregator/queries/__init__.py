"""Read side for clients: related articles and explanations of verdicts."""
