"""A trained model as an HTTP service with a page: `asapool serve`."""
