"""What is kept of the pages: permuted tables, records, and the stores that hold them."""
