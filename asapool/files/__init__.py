"""Files that appear whole or not at all: atomic writes, folder locks, JSON, CSV and TOML."""
