"""Wire format v1, shared by server, command line and clients: requests, responses, decoding, encoding."""
