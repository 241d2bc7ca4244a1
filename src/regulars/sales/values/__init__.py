"""The values of product properties as they are stored on tickets, for the catalog, which counts them."""
