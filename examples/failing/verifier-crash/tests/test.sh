#!/bin/bash
echo 'about to crash'
kill -SEGV $$
