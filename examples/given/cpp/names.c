rnet_node *node = NULL;
rnet_publisher *hello = NULL;
const uint8_t *bytes = NULL;
