"""Wire format v1, shared by server, command line and clients: bodies, problems and their codecs."""
