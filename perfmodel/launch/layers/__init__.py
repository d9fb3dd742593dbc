"""The layers of a decoder, each split over a grid."""
