#!/bin/bash
echo 'cannot find the answer' >&2
exit 3
