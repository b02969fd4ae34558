#!/bin/sh
# Counts the words of this shard.
wc -w < "$(dirname "$0")/words.txt"
