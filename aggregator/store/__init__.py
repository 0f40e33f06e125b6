"""Key-value stores: the contract, Redis and Valkey servers, the embedded server, memory, leases."""
