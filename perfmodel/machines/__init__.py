"""What a model runs on: device, node, fabric, network, scheduler, and profiles whose figures carry their sources."""
