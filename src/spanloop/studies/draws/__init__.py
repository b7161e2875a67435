"""What varies in a study: distributions, designs, tables, and where draws go."""
