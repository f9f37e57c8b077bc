rnet::Node node("page");
auto hello = node.publisher("/hello");
auto scans = node.subscriber("/scan");
