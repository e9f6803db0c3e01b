"""What mappings cannot say: functions that they name by hook:, a file per backend."""
