export function serverView({main}) { main.append('x'); return {close() {}}; }
