#!/bin/bash
echo "$GREETING, $WHO" > greeting.txt
