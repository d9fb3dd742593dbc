"""A step of the launch code on pretended ranks, counted."""
