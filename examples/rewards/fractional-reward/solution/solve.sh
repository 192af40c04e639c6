#!/bin/bash
# Three of four lines are right, so that the example shows a fraction.
printf '%s\n' apple banana cherry durian > fruits.txt
