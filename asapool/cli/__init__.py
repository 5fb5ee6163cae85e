"""The command line: words in, one library call, words out."""
