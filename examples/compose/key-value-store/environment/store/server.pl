# One file below /data per key; one request per connection.
use strict;
use warnings;
use IO::Socket::INET;

sub put {
    my ($key, $value) = @_;
    open my $file, '>', "/data/$key" or return 0;
    print $file $value;
    return close $file;
}

sub get {
    my ($key) = @_;
    open my $file, '<', "/data/$key" or return '';
    local $/;
    return <$file> // '';
}

put('question', $ENV{QUESTION} // '');
my $server = IO::Socket::INET->new(LocalPort => $ENV{PORT}, Listen => 5, ReuseAddr => 1) or die "listening: $!";
while (my $client = $server->accept) {
    my $line = <$client> // '';
    if ($line =~ /^GET (\w+)\r?\n/) {
        print $client get($1), "\n";
    } elsif ($line =~ /^SET (\w+) ([^\r\n]*)\r?\n/) {
        print $client put($1, $2) ? "OK\n" : "ERROR\n";
    } else {
        print $client "ERROR\n";
    }
    close $client;
}
