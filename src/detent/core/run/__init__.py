"""What a run reports: agent events, run events and the view folded from them."""
