"""The pages of the navigation area "Integrate"."""
