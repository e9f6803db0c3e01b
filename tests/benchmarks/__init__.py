"""What the product costs in time and memory; ``run`` measures, nothing here passes or fails."""
