"""The parts that images share: operations as the native core takes them, and the libraries that it stands in for."""
