# Sends its arguments as one request; fails when there is no answer.
use strict;
use warnings;
use IO::Socket::INET;

my $store = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $ENV{PORT}) or exit 1;
print $store join(' ', @ARGV), "\n";
print <$store> // exit 1;
