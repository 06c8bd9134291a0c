"""The frozen records that the stages hand on, one file for each stage. No input or output."""
